"""Promises that a test settles itself: the one place where tests know how."""

from webnn_py import MLPromise

pending = MLPromise._create
resolve = MLPromise._resolve
reject = MLPromise._reject
