"""The paper, reproduced: its tables and figures as data, then as pictures and a page."""
