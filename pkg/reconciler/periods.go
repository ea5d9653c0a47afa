package reconciler

import "time"

// Delays before the next reconcile of an object, for changes that may cause no watch event.
const (
	// ConflictRetry is the pause after an update conflict. Normally the watch event of the other change arrives first; the pause covers an
	// event that arrived before the update, and a conflict without an event.
	ConflictRetry = 250 * time.Millisecond
	// StaleCacheRetry is the pause while the cache does not hold the last status update. A patch of the older version would conflict.
	StaleCacheRetry = 25 * time.Millisecond
	// SettleTime is the minimum time between two updates of a status if only the last one matters to users, such as while pods start.
	SettleTime = time.Second
	// RequeueSoon is the pause for a change that is expected within seconds: a stale cache, an object that is being deleted, a value that is
	// about to be read.
	RequeueSoon = time.Second
	// RequeueUnavailable is the pause while a server is not as desired. The cause may be in its pods, which do not change the Deployment.
	RequeueUnavailable = 30 * time.Second
	// RequeueBlocked is the pause while only a user or another program can resolve a problem: a foreign object has the name, the API server
	// rejects a write or drops fields of a status, a namespace terminates. The cache does not show when the problem ends.
	RequeueBlocked = time.Minute
)
