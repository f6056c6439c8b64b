"""The emulator, whole: the API, its timelines, graphs, operators and their decompositions, and what a device is."""
