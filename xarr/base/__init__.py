"""The floor that all else stands on: settings, records, host values, broadcasting of bare shapes."""
