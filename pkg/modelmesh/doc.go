// Package modelmesh knows the rules by which runtimes and models meet: what a runtime offers, what a model asks for, under which
// names the mesh knows both, and what a runtime may not contain. Everything is a function of what it is given; controllers and
// webhooks ask the same questions here.
package modelmesh
