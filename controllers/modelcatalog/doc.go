// Package modelcatalog runs the model catalog of a Catalog: the server behind its proxy, a database whose content can be
// made anew at any time, the ConfigMaps that it reads its sources from, and the rights of those who use it.
package modelcatalog
