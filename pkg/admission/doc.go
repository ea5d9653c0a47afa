// Package admission checks the objects and fields that pods of a custom resource use: ServiceAccounts, Secrets, images, volumes, labels. The
// manager creates these pods with its own permissions, so the API server does not check those of the author.
//
// Each kind has a pure function that returns the [References] of an object. Webhooks check added references against the permissions of
// the user ([Rules.Review]). Controllers repeat the checks that need no user ([Rules.Forbidden]), for objects that were stored while the
// webhook was not running. The package also builds admission responses, and [Budget] limits the memory of requests.
package admission
