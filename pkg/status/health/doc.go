// Package health judges objects of any kind by what their status says, for people who look at a cluster.
//
// Kinds of which we know more have a judge in a table; all others are judged by the rules of kstatus: the generation that was
// observed, and the conditions that most kinds have. Nothing is read from the cluster here, and a status of unexpected shape
// is no error: what is not understood counts as not there.
package health
