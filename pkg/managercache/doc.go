// Package managercache configures the cache of the manager: which objects it contains, and how reads of kinds that are not served fail.
package managercache
