package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// Platform names the third-party APIs that a cluster serves.
type Platform string

// The platforms.
const (
	Bare      Platform = "bare"      // Kubernetes alone
	Plain     Platform = "plain"     // with Gateway API, Prometheus operator and KubeRay
	OpenShift Platform = "openshift" // Plain with Route, Group, Template, kinds of the console and the cluster configuration
)

// Set names a group of CRDs of one project.
type Set string

// The sets of CRDs. [KServe] and [PlatformServices] belong to no platform: tests add them with [InstallSet].
const (
	GatewayAPI   Set = "gateway-api"
	Monitoring   Set = "monitoring"
	KubeRay      Set = "kuberay"
	OpenShiftAPI Set = "openshift-api"
	KServe       Set = "kserve"
	// PlatformServices are the APIs that the operator of Open Data Hub installs.
	PlatformServices Set = "platform-services"
)

func (p Platform) validate() error {
	if _, ok := platformSets[p]; !ok {
		return fmt.Errorf("unknown platform %q, known are %s, %s and %s", p, Bare, Plain, OpenShift)
	}
	return nil
}

var platformSets = map[Platform][]Set{
	Bare:      nil,
	Plain:     {GatewayAPI, Monitoring, KubeRay},
	OpenShift: {GatewayAPI, Monitoring, KubeRay, OpenShiftAPI},
}

// source is the location of the CRDs of a set: files of a module. An empty version means the version in the main module, so tests
// serve the APIs that the operator is compiled with. CRDs without a file are in localCRDs.
type source struct {
	module Module
	crds   map[string]string // name of the CRD to file in the module; empty for a local CRD
}

const openShiftModule = "github.com/openshift/api"

// Folders of the CRDs of OpenShift.
const (
	configManifests  = "config/v1/zz_generated.crd-manifests/"
	consoleManifests = "console/v1/zz_generated.crd-manifests/"
	routeManifests   = "route/v1/zz_generated.crd-manifests/"
)

// sources are the locations of all sets. The module of OpenShift has the version of the main module; the others have their own versions.
var sources = map[Set]source{
	GatewayAPI: {
		module: Module{Path: "sigs.k8s.io/gateway-api", Version: "v1.6.3", Sum: "h1:lKpJa5bGlraC/QeACvCpsHLdmO6y0iKfzVl6gzaFEYc="},
		crds: inFolder("config/crd/standard/", "gateway.networking.k8s.io",
			"gatewayclasses", "gateways", "httproutes", "referencegrants", "grpcroutes", "backendtlspolicies"),
	},
	Monitoring: {
		module: Module{
			Path: "github.com/prometheus-operator/prometheus-operator", Version: "v0.94.1",
			Sum: "h1:QEIb2wenPH+SdMN1xMf8l4Pmj00YYXXI6HlbLlQWkww=",
		},
		crds: inFolder("example/prometheus-operator-crd/", "monitoring.coreos.com",
			"servicemonitors", "podmonitors", "prometheusrules"),
	},
	KubeRay: {
		module: Module{
			Path: "github.com/ray-project/kuberay/ray-operator", Version: "v1.6.2",
			Sum: "h1:XUckRswLMyk71D00L62d2Vanh0fVkNqu56+IF/rr+O0=",
		},
		crds: inFolder("config/crd/bases/", "ray.io", "rayclusters", "rayjobs", "rayservices"),
	},
	OpenShiftAPI: {
		module: Module{Path: openShiftModule},
		crds: map[string]string{
			"routes.route.openshift.io":               routeManifests + "routes.crd.yaml",
			"consolelinks.console.openshift.io":       consoleManifests + "00_consolelinks.crd.yaml",
			"consoleyamlsamples.console.openshift.io": consoleManifests + "00_consoleyamlsamples.crd.yaml",
			"proxies.config.openshift.io":             configManifests + "0000_03_config-operator_01_proxies.crd.yaml",
			"ingresses.config.openshift.io":           configManifests + "0000_10_config-operator_01_ingresses.crd.yaml",
			"apiservers.config.openshift.io":          configManifests + "0000_10_config-operator_01_apiservers-TechPreviewNoUpgrade.crd.yaml", // with spec.tlsAdherence
			"clusterversions.config.openshift.io":     configManifests + "0000_00_cluster-version-operator_01_clusterversions-Default.crd.yaml",
			"groups.user.openshift.io":                "", // an aggregated API without a CRD, replaced with a local CRD
			"templates.template.openshift.io":         "", // an aggregated API, too
		},
	},
	PlatformServices: {
		module: Module{Path: openShiftModule}, // the CRDs are local
		crds:   map[string]string{"auths.services.platform.opendatahub.io": ""},
	},
	KServe: {
		module: Module{
			Path: "github.com/kserve/kserve", Version: "v0.19.0",
			Sum: "h1:8Pbdm9Ekn1JEuHrobqJhZI4uRHyf5bk1ofb5+3kEI14=",
		},
		crds: inFolder("config/crd/full/", "serving.kserve.io", "servingruntimes", "clusterservingruntimes", "inferenceservices"),
	},
}

// inFolder returns the file names of CRDs in a folder, in the format of controller-gen.
func inFolder(folder, group string, plurals ...string) map[string]string {
	files := map[string]string{}
	for _, plural := range plurals {
		files[plural+"."+group] = folder + group + "_" + plural + ".yaml"
	}
	return files
}

// Sets returns the sets of CRDs that a platform serves.
func Sets(p Platform) []Set { return slices.Clone(platformSets[p]) }

// setOf returns the set that contains a CRD.
func setOf(crd string) (Set, error) {
	var known []string
	for set, s := range sources {
		if _, ok := s.crds[crd]; ok {
			return set, nil
		}
		for name := range s.crds {
			known = append(known, name)
		}
	}
	slices.Sort(known)
	return "", fmt.Errorf("unknown CRD %s, known are %s", crd, strings.Join(known, ", "))
}
