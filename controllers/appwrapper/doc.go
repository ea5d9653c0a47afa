// Package appwrapper runs AppWrappers: it creates the objects of a workload when Kueue admits it, watches over them and
// their pods, retries what fails, and clears everything away when the workload is suspended, fails or is deleted. A second
// controller follows the health of nodes.
package appwrapper
