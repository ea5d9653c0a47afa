// Package appwrapper decides about AppWrappers at admission: it labels them with their creator, and refuses what could
// not run, what would let a user create more than they may, and changes of what is deployed.
//
// The rules are pure functions from the object and what the cluster says about kinds and rights; the handlers only decode,
// ask and answer. An object is never written back from a type: the patch touches labels alone, so that fields which this
// program does not know survive.
package appwrapper
