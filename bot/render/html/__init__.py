"""The pages of the App: a run, the front page, and what is not there. Pure: values in, HTML out."""
