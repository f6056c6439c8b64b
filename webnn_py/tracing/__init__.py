"""Traces: what happens on the two timelines, and when.

page   one HTML file that shows a trace
"""
