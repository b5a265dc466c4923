"""Attention, hidden states and measurements, as data, pictures and pages."""
