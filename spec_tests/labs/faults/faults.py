"""All faults."""

from spec_tests.labs.faults import (
    of_kernels,
    of_models,
    of_processor_devices,
    of_programs,
    of_proposals,
    of_special_numbers,
)

FAULTS = [
    *of_kernels.FAULTS,
    *of_models.FAULTS,
    *of_processor_devices.FAULTS,
    *of_programs.FAULTS,
    *of_proposals.FAULTS,
    *of_special_numbers.FAULTS,
]
