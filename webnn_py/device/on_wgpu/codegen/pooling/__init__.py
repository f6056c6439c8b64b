"""What poolings read, and those that read it down columns."""
