// Package admission judges what the author of a custom resource makes pods use: accounts, Secrets, images, volumes, labels. The pods
// are made by the manager, with the rights of the manager, so nothing else checks whether the author may.
//
// Each kind has a pure function that lists the [Uses] of an object. Webhooks hold what is new in a request against the rights of its
// author ([Judge]); controllers repeat the part that needs no author ([Rules.Forbidden]), for objects that were stored while no
// webhook answered. The answers and patches of all webhooks are built here too, and [Budget] bounds the memory that their requests take.
package admission
