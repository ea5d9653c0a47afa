// Package apply is the only writer of the objects that controllers make. It brings a list of desired objects into
// the cluster by server-side apply, one field owner per component, and sends nothing when nothing has to change.
//
// Whether an object is settled is decided without a request: the Applier remembers what the API server answered
// last, together with a digest of the managed fields entry of its own field owner. Server-side apply moves a field
// out of that entry as soon as any other client changes its value, so an unchanged digest proves that all our fields
// still hold what we wrote, however often status or foreign fields have moved since. Only foreign admission webhooks can change them
// without that; it moves the generation, which costs one look. After a restart, when the
// memory is empty, each object is compared in memory with what is desired: where there are many of a kind in a namespace, as one list
// shows them, otherwise after a live read of it.
//
// What guards pods stands before them: see Stage. A guard that cannot be written holds back the workloads of its call.
//
// An object of the right name that bears none of our marks is never taken over silently: see ForeignError.
package apply
