"""A diagnosed training program → the smallest patch that is proven to help."""
