print("figures need matplotlib")
