"""Parts that several rules share: axes, sliding windows, attention, steps of recurrent networks, integer products."""
