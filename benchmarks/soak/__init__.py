"""Mixed honest and hostile reports at a steady rate: does the App stay as it is?"""
