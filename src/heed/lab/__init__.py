"""Attention, hidden states and experiments, as data, plots and pages."""
