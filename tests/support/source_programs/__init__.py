"""Random whole programs as source text: drawn, run in several ways, compared, and made smaller."""
