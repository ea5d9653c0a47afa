// Package raycluster puts the security of RayClusters into their pod templates at admission, and refuses changes of it: a
// sidecar that knows who calls the dashboard, and the certificates of the pods.
//
// What belongs into a cluster is planned by pure functions from the settings, the platform, the object and what is stored
// of it. One plan serves both webhooks: the first writes it in, the second compares. The object is never written back from
// a type: the patch has single operations on the raw object, so that fields which this program does not know survive, and
// elements of lists are ours by their name and what they say.
package raycluster
