// Package apply creates, updates and prunes the child objects of controllers by server-side apply, with one field owner per component.
//
// No request is sent for an unchanged object. The Applier stores the resourceVersion of its last write and a hash of the managed fields
// entry of its field owner. The API server removes a field from that entry as soon as another client changes its value, so an unchanged
// hash proves that all applied fields keep their values. Mutating admission webhooks are the exception; they raise metadata.generation,
// and the object is then read and compared. After a restart each object is compared with the desired state: after one list for
// many objects of a kind in a namespace, after a read of each otherwise.
//
// Objects are applied in stages, see Stage. Workloads are not applied while one of their prerequisites fails.
//
// An existing object without a marker of this operator is not adopted unless Object.AdoptIf allows it: see ForeignError.
package apply
