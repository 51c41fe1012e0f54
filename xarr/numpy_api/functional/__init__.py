"""Functional programming: functions of users along axes and over elements."""
