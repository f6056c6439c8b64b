"""All faults, by name."""

from itertools import chain

from spec_tests.labs.faults import of_gpu, of_host, of_models, of_processors, of_programs, of_validation
from spec_tests.labs.faults.records import Fault

SUBJECTS = of_programs, of_validation, of_gpu, of_processors, of_models, of_host

FAULTS: dict[str, Fault] = dict(chain.from_iterable(subject.FAULTS.items() for subject in SUBJECTS))
