// Package reference follows the Secrets and ConfigMaps that the pods of a component consume but that other clients own.
//
// The objects are watched as metadata. Their content is read, live, only when their resourceVersion has moved, and of the
// content nothing is kept but a hash of the keys that pods consume. The hashes stand on the workload, so that a rotated
// password or certificate rolls the pods, an unrelated key or a touched label does not, and a restart of the manager or the
// take-over of a workload that was made by another operator does not either.
package reference
