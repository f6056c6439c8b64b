"""Steps on the device timeline that are loaded when a script asks for them."""
