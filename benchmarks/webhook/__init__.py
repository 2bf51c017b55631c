"""How fast a delivery is answered, measured beside a bare synchronous write on the same disk."""
