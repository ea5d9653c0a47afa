package settings

import (
	"slices"
	"strings"
	"testing"
)

// The error for an invalid value names the key, the value and the valid values.
func TestReadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"inferenceServiceName: Served":                                `inferenceServiceName "Served": must be the name of a Service`,
		"inferenceServiceName: ''":                                    `inferenceServiceName ""`,
		"inferenceServiceName: 9a":                                    `inferenceServiceName "9a"`,
		"\ninferenceServicePort: 0":                                   `inferenceServicePort "0": must be a whole number from 1 to 65535`,
		"inferenceServicePort: 70000":                                 `"70000"`,
		"inferenceServicePort: 80.5":                                  `"80.5"`,
		"inferenceServicePort: [1]":                                   "inferenceServicePort a list",
		"headlessService: 2":                                          `headlessService "2": must be true or false`,
		"headlessService: {}":                                         "headlessService an object",
		"podsPerRuntime: -1":                                          `podsPerRuntime "-1": must be a whole number from 0 to 65535`,
		"podsPerRuntime: 99999999999999999999":                        "podsPerRuntime",
		"grpcMaxMessageSizeBytes: 16Mi":                               `grpcMaxMessageSizeBytes "16Mi": must be a whole number from 0 to 2147483647`,
		"tls: {secretName: 'A B'}":                                    `tls.secretName "A B": must be the name of a Secret, or empty`,
		"tls: {clientAuth: 'a b'}":                                    `tls.clientAuth "a b"`,
		"restProxy: {port: http}":                                     `restProxy.port "http"`,
		"restProxy: {~: 1}":                                           "restProxy an object with a key that is not a string: must be an object",
		"restProxy: on":                                               `restProxy "on": must be an object`,
		"storageSecretName: ''":                                       `storageSecretName "": must be the name of a Secret`,
		"etcdSecretName: _":                                           `etcdSecretName "_"`,
		"serviceAccountName: A":                                       `serviceAccountName "A"`,
		"metrics: {scheme: grpc}":                                     `metrics.scheme "grpc": must be http or https`,
		"scaleToZero: {gracePeriodSeconds: 1m}":                       `scaleToZero.gracePeriodSeconds "1m"`,
		"runtimePodLabels: [a]":                                       "runtimePodLabels a list: must be an object of strings",
		"runtimePodLabels: {a: {b: c}}":                               "runtimePodLabels.a an object: must be a string",
		"runtimePodLabels: {'a b': c}":                                `runtimePodLabels "a b": must be an object whose keys are names`,
		"runtimePodLabels: {a: 'b c'}":                                `runtimePodLabels.a "b c": must be a value that Kubernetes accepts`,
		"runtimePodAnnotations: {'': c}":                              `runtimePodAnnotations ""`,
		"imagePullSecrets: [pull]":                                    `imagePullSecrets[0] "pull": must be a list of objects with a name`,
		"imagePullSecrets: [{name: a}, {}]":                           "imagePullSecrets[1].name is missing: name a Secret",
		"imagePullSecrets: pull":                                      `imagePullSecrets "pull"`,
		"imagePullSecrets: [{name: B}]":                               `imagePullSecrets[0].name "B"`,
		"allowAnyPVC: maybe":                                          `allowAnyPVC "maybe"`,
		"builtInServerTypes: [triton, '../sh']":                       `builtInServerTypes[1] "../sh": must be a list of names`,
		"builtInServerTypes: triton":                                  `builtInServerTypes "triton"`,
		"builtInServerTypes: [null]":                                  "builtInServerTypes[0]",
		"payloadProcessors: {a: b}":                                   "payloadProcessors an object",
		"payloadProcessors: ['']":                                     "Error parsing payload processor ''",
		"internalModelMeshEnvVars: [{value: x}]":                      "internalModelMeshEnvVars[0].name is missing: name a variable",
		"internalModelMeshEnvVars: [{name: 'A=B'}]":                   `internalModelMeshEnvVars[0].name "A=B"`,
		"internalModelMeshEnvVars: [{name: A, value: [x]}]":           "internalModelMeshEnvVars[0].value a list",
		"modelMeshEndpoint: a b":                                      `modelMeshEndpoint "a b"`,
		"runtimeArchitectures: ['']":                                  "runtimeArchitectures[0]",
		"authProxy: {mode: on}":                                       `authProxy.mode "on": must be auto, always or never`,
		"authProxy: {extraArgs: [[]]}":                                "authProxy.extraArgs[0] a list",
		"networkPolicy: {enabled: 7}":                                 `networkPolicy.enabled "7"`,
		"podsPerRuntime: 1 #" + strings.Repeat("x", maxDocumentBytes): "the settings have 65555 bytes: write at most 65536",
		"~: x":                       "the settings must be a YAML object and not an object with a key that is not a string",
		"- a":                        "the settings must be a YAML object and not a list",
		"text":                       `the settings must be a YAML object and not "text"`,
		"a: [":                       "not valid YAML",
		"a: 1\n---\nb: 2":            "the settings must be one YAML document: remove the other documents",
		"a: 1\n--- {":                "the settings must be one YAML document",
		"inferenceServicePort: 8089": "inferenceServicePort 8089 is also the port of the probes: choose another",
		"authProxy: {mode: always}\nmetrics: {port: 8443}":            "metrics.port 8443 is also the port of the authentication proxy: choose another",
		"authProxy: {mode: always}\nrestProxy: {port: 8444}":          "restProxy.port 8444 is also the port of the authentication proxy: choose another",
		"metrics: {port: 8085}":                                       "metrics.port 8085 is also the port of the adapter",
		"inferenceServicePort: 8086":                                  "inferenceServicePort 8086 is also the port of the puller",
		"metrics: {port: 8033}":                                       "metrics.port 8033 is also the port of inferenceServicePort",
		"restProxy: {port: 8080}":                                     "restProxy.port 8080 is also the port of the traffic between pods",
		"restProxy: {port: 2112}":                                     "metrics.port 2112 is also the port of restProxy.port",
		"podsPerRuntime: " + strings.Repeat("long", 100):              "long...",
		"storageHelperResources: {limits: {memory: 1Mi}}":             "Invalid config for 'storageHelperResources': requests.memory 96Mi is more than limits.memory 1Mi",
		"restProxy: {resources: {requests: {memory: 1Gi}}}":           "Invalid config for 'restProxy.resources': requests.memory 1Gi",
		"restProxy: {resources: {requests: 1Gi}}":                     `restProxy.resources.requests "1Gi": must be an object`,
		"restProxy: {port: 1, port: 2}":                               `line 1: mapping key "port" already defined at line 1`,
		"runtimePodLabels: {a: 1, a: 2}":                              `line 1: mapping key "a" already defined at line 1`,
		"x: &x {<<: *x}\nrestProxy: *x":                               "not valid YAML: yaml: anchor 'x' value contains itself",
		"restProxy: {<<: 7}":                                          "map merge requires map or sequence of maps as the value",
		"? [a]\n: b":                                                  "invalid map key",
		"podsPerRuntime: a\nheadlessService: b\ntls: {secretName: C}": `"C"`,
	} {
		expectRejected(t, text, want)
	}
}

// A disabled listener does not conflict.
func TestPortsOfDisabledListeners(t *testing.T) {
	mustRead(t, Default(), "restProxy: {enabled: false, port: 2112}")
	mustRead(t, Default(), "metrics: {enabled: false, port: 8033}")
	mustRead(t, Default(), "metrics: {port: 8443}")
	mustRead(t, Default(), "metrics: {port: 8444}\nauthProxy: {mode: always}\nrestProxy: {enabled: false}")
}

// Errors about the keys of a map are sorted, so that an unchanged document causes no second Event.
func TestErrorsOfMapsAreSorted(t *testing.T) {
	_, _, err := Read(Default(), "runtimePodLabels: {d: [], b: [], f: [], a: [], c: [], e: []}")
	if err == nil || !slices.IsSorted(strings.Split(err.Error(), "\n")) || strings.Count(err.Error(), "\n") != 5 {
		t.Errorf("error %v, want a sorted line for each key", err)
	}
}

// All errors are reported, each in a line.
func TestAllErrorsAreReported(t *testing.T) {
	_, _, err := Read(Default(), "podsPerRuntime: a\nheadlessService: b\nmetrics: {port: c, scheme: d}")
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("unexpected error: %v", err)
	}
}

// YAML anchors and merge keys are supported.
func TestReadSupportsAnchorsAndMergeKeys(t *testing.T) {
	got := mustRead(t, Default(), "modelMeshResources: &r {limits: &l {cpu: 4, memory: 2Gi}}\nstorageHelperResources: *r\nrestProxy: {resources: {limits: {<<: *l, cpu: 5}}}")
	for got, want := range map[string]string{
		got.ModelMeshResources.Limits.Memory().String():     "2Gi",
		got.StorageHelper.Resources.Limits.Cpu().String():   "4",
		got.RESTProxy.Resources.Limits.Cpu().String() + "!": "5!",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Keys without effect are reported with their path and a similar key.
func TestUnknownKeys(t *testing.T) {
	_, notes, err := Read(Default(), `
podsPerRuntimes: 3
etcd: {}
metrics: {ports: 1, enabled: true}
modelMeshResources: {limits: {ephemeral-storage: 1Gi}}
internalModelMeshEnvVars: [{name: A, valueFrom: {}}]
tls: {clientAuth: REQUIRE}
restProxy: {image: {command: [x]}}
"a.b": 1
`+strings.Repeat("k", 300)+`: 1
`)
	want := []string{
		"a.b is unknown and has no effect: remove or correct it",
		"etcd is unknown and has no effect: remove or correct it",
		"internalModelMeshEnvVars[0].valueFrom is unknown and has no effect: remove or correct it",
		strings.Repeat("k", 80) + "... is unknown and has no effect: remove or correct it",
		"metrics.ports is unknown and has no effect (did you mean port?): remove or correct it",
		"modelMeshResources.limits.ephemeral-storage is unknown and has no effect: remove or correct it",
		"podsPerRuntimes is unknown and has no effect (did you mean podsPerRuntime?): remove or correct it",
		"restProxy.image.command is unknown and has no effect: remove or correct it",
		`tls.clientAuth "REQUIRE" is passed on unchanged: use require or optional, the only values that ModelMesh supports`,
	}
	slices.Sort(notes)
	if err != nil || !slices.Equal(notes, slices.Sorted(slices.Values(want))) {
		t.Errorf("unexpected notices, or error %v:\n%s", err, strings.Join(notes, "\n"))
	}
}

// A namespace can set amounts and features, but not code, identity, credentials and addresses.
func TestNamespaceAuthority(t *testing.T) {
	var allowed, all []string
	for line := range strings.Lines(allKeysDocument) {
		if !strings.HasPrefix(line, " ") && strings.Contains(line, ":") {
			all = append(all, line)
		}
	}
	for _, line := range all {
		key, _, _ := strings.Cut(line, ":")
		if key == "restProxy" || key == "authProxy" {
			continue // tested below
		}
		if _, _, err := ReadOverride(Default(), line); err == nil {
			allowed = append(allowed, key)
		} else if !strings.Contains(err.Error(), "cannot be set for a single namespace: set it in ConfigMap model-serving-config of the namespace with the ModelMesh configuration") {
			t.Errorf("%s: unexpected error: %v", key, err)
		}
	}
	slices.Sort(allowed)
	want := []string{"enableAccessLogging", "grpcMaxMessageSizeBytes", "headlessService", "metrics", "modelMeshResources", "podsPerRuntime",
		"scaleToZero", "storageHelperResources"}
	if !slices.Equal(allowed, want) {
		t.Errorf("a namespace can set %q, want %q", allowed, want)
	}
	for text, ok := range map[string]bool{
		"restProxy: {enabled: false}": true, "restProxy: {resources: {limits: {cpu: 3}}}": true, "restProxy: {port: 1}": false,
		"restProxy: {skipVerify: true}": false, "restProxy: {image: {name: mine}}": false, "RESTPROXY: {Port: 1}": false,
		"authProxy: {resources: {limits: {cpu: 3}}}": true, "authProxy: {mode: never}": false, "authProxy: {extraArgs: []}": false,
		"podsPerRuntime: 20": true, "podsPerRuntime: 21": false, "RuntimePodAnnotations: {sidecar.istio.io/userVolume: x}": false,
		"networkPolicy: {enabled: false}": false, "ServiceAccountName: root": false, "tls: {secretName: other}": false,
	} {
		if _, _, err := ReadOverride(Default(), text); (err == nil) != ok {
			t.Errorf("%s: got error %v, want it accepted: %t", text, err, ok)
		}
	}
	if _, notes, err := ReadOverride(Default(), "odd: 1"); err != nil || len(notes) != 1 {
		t.Errorf("unexpected notes %q, error %v", notes, err)
	}
}

// A namespace can exceed the limit of replicas if the administrators do. Labels with which the platform selects pods have no effect.
func TestSettingLimits(t *testing.T) {
	if _, _, err := ReadOverride(mustRead(t, Default(), "podsPerRuntime: 50"), "podsPerRuntime: 50"); err != nil {
		t.Error(err)
	}
	got, notes, err := Read(Default(), "runtimePodLabels: {ray.io/cluster: a, platform.opendatahub.io/x: b, modelmesh-service: c, workload.codeflare.dev/y: d, team: e}")
	if err != nil || len(notes) != 4 || !strings.Contains(notes[1], "runtimePodLabels.platform.opendatahub.io/x has no effect") || len(got.RuntimePodLabels) != 1 {
		t.Errorf("unexpected labels %v or notes %q, error %v", got.RuntimePodLabels, notes, err)
	}
}
