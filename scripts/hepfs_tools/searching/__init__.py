"""Tables with search indexes of HEP001, right ones and broken ones, by the words of the specification."""
