"""Which environment a report asks for."""
