"""How Chromium writes each operator; each module registers its rules in ``drawing.RULES``."""
