"""Networks that go from step to step: all steps in one launch, or a launch for each step."""
