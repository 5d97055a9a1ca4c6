"""What repeats "Predict the Next Word" to the digit, slips of its code and all."""
