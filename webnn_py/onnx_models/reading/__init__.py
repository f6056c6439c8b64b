"""Reading of model files: parsing, checks of form, tensors, element types, functions, the order of nodes."""
