package drill

// sentence tells the result in one line.
func sentence(r *Result) string {
	if r.Passed {
		return r.Name + ": passed"
	}
	if len(r.Failures) == 1 {
		return r.Name + ": failed: " + r.Failures[0]
	}
	return r.Name + ": failed"
}
