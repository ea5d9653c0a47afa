package doctor

// Original is a former operator, whose work this one does.
type Original struct {
	// Deployment that runs it, and Lease that its replicas compete for; "" where that is not known.
	Deployment, Lease string
	// Components that take its place.
	Components []string
}

// originals are all of them, by the names under which they are installed.
var originals = []Original{
	{"mlflow-operator-controller-manager", "a5eb1b3b.opendatahub.io", []string{"mlflow", "platform"}},
	{"model-registry-operator-controller-manager", "85f368d1.opendatahub.io", []string{"modelregistry"}},
	{"catalog-controller-manager", "catalog.opendatahub.io", []string{"modelcatalog"}},
	{"aihub-controller-manager", "aihub-controller-manager", []string{"platform"}},
	{"modelmesh-controller", "modelmesh-controller-leader-lock", []string{"modelmesh"}},
	{"odh-model-controller", "", []string{"modelmesh"}},
	{"codeflare-operator-manager", "", []string{"raycluster", "appwrapper"}},
	{"appwrapper-controller-manager", "f134c674.codeflare.dev", []string{"appwrapper"}},
}
