package reconciler

// LastMessages holds the last message of each topic, so that an Event is sent only when its message changes.
type LastMessages[K comparable] map[K]string

// Replace stores the message of a topic, "" for none, and reports whether it differs from the previous one.
func (m LastMessages[K]) Replace(topic K, message string) (changed bool) {
	changed = m[topic] != message
	if m[topic] = message; message == "" {
		delete(m, topic)
	}
	return changed
}
