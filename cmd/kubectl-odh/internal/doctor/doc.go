// Package doctor looks for what is wrong with an installation: it gathers facts once, by a bounded number of requests, and judges them
// by functions that know nothing else. What may not be read makes a result unknown, and names the right that is missing.
package doctor
