"""The last stage: from a reproduced report to what is proposed to the repository."""
