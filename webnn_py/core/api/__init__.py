"""The objects of the API: their methods run in the caller's task, check, copy bytes, enqueue and return promises."""
