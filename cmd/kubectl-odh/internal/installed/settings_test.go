package installed

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/test/fakecluster"
)

const fileHead = "apiVersion: config.platform.opendatahub.io/v1alpha1\nkind: PlatformOperatorConfiguration\n"

// settingsOf reads the settings of a Deployment in a cluster with two ConfigMaps.
func settingsOf(t *testing.T, pod string) Manager {
	t.Helper()
	d := &appsv1.Deployment{}
	d.Namespace = "operators"
	if err := yaml.UnmarshalStrict([]byte(pod), &d.Spec.Template.Spec); err != nil {
		t.Fatal(err)
	}
	configMap := func(name string, data map[string]any) unstructured.Unstructured {
		u := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
		u.SetNamespace("operators")
		u.SetName(name)
		return u
	}
	cluster := fakecluster.Start(t, fakecluster.KubernetesKinds(), []unstructured.Unstructured{
		configMap("switches", map[string]any{"ENABLE_MLFLOW": "false", "ray": "false", "ODD_ENABLE_APPWRAPPER": "false"}),
		configMap("file", map[string]any{"settings": fileHead + "components: [mlflow, platform]\n", "other": fileHead + "components: [nonsense]\n"}),
	})
	cluster.Forbid(func(r fakecluster.Request) bool { return r.Name == "hidden" })
	objects, err := dynamic.NewForConfig(&rest.Config{Host: cluster.URL})
	if err != nil {
		t.Fatal(err)
	}
	set := fetch.Set{Kinds: []fetch.Kind{{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps", Namespaced: true}}}
	m := Manager{Deployment: d, Namespace: d.Namespace}
	m.readSettings(t.Context(), fetch.Reader{Objects: objects, Set: set})
	return m
}

func TestSettingsAreReadFromPod(t *testing.T) {
	for name, c := range map[string]struct {
		pod               string
		enabled, disabled []string
	}{
		"defaults":                    {`containers: [{name: manager}]`, []string{"mlflow", "modelmesh", "raycluster"}, []string{"platform"}},
		"arguments":                   {`containers: [{name: manager, args: [--enable-platform, --enable-mlflow=false]}]`, []string{"platform"}, []string{"mlflow"}},
		"sub-command":                 {`containers: [{name: manager, args: [run, --components=mlflow]}]`, []string{"mlflow"}, []string{"modelmesh"}},
		"flags in command":            {`containers: [{name: manager, command: [/manager, run, --components=modelmesh], args: [--enable-mlflow]}]`, []string{"mlflow", "modelmesh"}, []string{"raycluster"}},
		"variables":                   {`containers: [{name: manager, env: [{name: ENABLE_MLFLOW, value: "false"}]}]`, []string{"modelmesh"}, []string{"mlflow"}},
		"argument overrides variable": {`containers: [{name: manager, args: [--enable-mlflow], env: [{name: ENABLE_MLFLOW, value: "false"}]}]`, []string{"mlflow"}, nil},
		"ConfigMap key": {
			`containers: [{name: manager, env: [{name: ENABLE_RAYCLUSTER, valueFrom: {configMapKeyRef: {name: switches, key: ray}}}]}]`,
			[]string{"mlflow"}, []string{"raycluster"},
		},
		"missing key": {
			`containers: [{name: manager, env: [{name: ENABLE_RAYCLUSTER, valueFrom: {configMapKeyRef: {name: switches, key: other}}}]}]`,
			[]string{"raycluster"}, nil,
		},
		"unreadable ConfigMap": {
			`containers: [{name: manager, env: [{name: ENABLE_RAYCLUSTER, valueFrom: {configMapKeyRef: {name: hidden, key: ray}}}]}]`,
			[]string{"raycluster"}, nil,
		},
		"Secret is not read": {
			`containers: [{name: manager, env: [{name: ENABLE_RAYCLUSTER, valueFrom: {secretKeyRef: {name: switches, key: ray}}}]}]`,
			[]string{"raycluster"}, nil,
		},
		"envFrom of a ConfigMap": {`containers: [{name: manager, envFrom: [{configMapRef: {name: switches}}]}]`, []string{"appwrapper"}, []string{"mlflow"}},
		"envFrom of a ConfigMap with a prefix": {
			`containers: [{name: manager, envFrom: [{prefix: X_, configMapRef: {name: switches}}, {secretRef: {name: a}}]}]`, []string{"mlflow", "appwrapper"}, nil,
		},
		"file of a ConfigMap": {`
containers: [{name: manager, args: [--config=/etc/manager/settings], volumeMounts: [{name: other, mountPath: /tmp}, {name: file, mountPath: /etc/manager}]}]
volumes: [{name: other, emptyDir: {}}, {name: file, configMap: {name: file}}]
`, []string{"mlflow", "platform"}, []string{"modelmesh"}},
		"file with another path than its key": {`
containers: [{name: manager, args: [--config=/etc/manager/config.yaml], volumeMounts: [{name: file, mountPath: /etc/manager}]}]
volumes: [{name: file, configMap: {name: file, items: [{key: settings, path: config.yaml}]}}]
`, []string{"platform"}, []string{"modelmesh"}},
		"file with a subPath": {`
containers: [{name: manager, args: [--config=/config.yaml], volumeMounts: [{name: file, mountPath: /config.yaml, subPath: settings}]}]
volumes: [{name: file, configMap: {name: file}}]
`, []string{"platform"}, []string{"modelmesh"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := settingsOf(t, c.pod)
			if !got.Known() {
				t.Fatal(got.SettingsProblem)
			}
			for _, component := range c.enabled {
				if !got.Settings.Enabled(component) {
					t.Errorf("%s is disabled, want enabled", component)
				}
			}
			for _, component := range c.disabled {
				if got.Settings.Enabled(component) {
					t.Errorf("%s is enabled, want disabled", component)
				}
			}
		})
	}
	if got := settingsOf(t, `containers: [{name: manager, env: [{name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}]}]`); got.Settings.OperatorNamespace != "operators" {
		t.Errorf("got namespace %q of the manager, want operators", got.Settings.OperatorNamespace)
	}
}

// Unreadable sources are reported if the manager uses them.
func TestUnreadSettings(t *testing.T) {
	for name, c := range map[string]struct {
		pod  string
		want []string
	}{
		"no settings":                            {`containers: [{name: manager, env: [{name: ENABLE_MLFLOW, value: "false"}]}]`, nil},
		"ConfigMap key":                          {`containers: [{name: manager, env: [{name: ENABLE_RAYCLUSTER, valueFrom: {configMapKeyRef: {name: switches, key: ray}}}]}]`, nil},
		"optional key":                           {`containers: [{name: manager, env: [{name: ENABLE_RAYCLUSTER, valueFrom: {configMapKeyRef: {name: none, key: ray, optional: true}}}]}]`, nil},
		"key of an unreadable ConfigMap":         {`containers: [{name: manager, env: [{name: ENABLE_RAYCLUSTER, valueFrom: {configMapKeyRef: {name: hidden, key: ray}}}]}]`, []string{"ENABLE_RAYCLUSTER in ConfigMap operators/hidden"}},
		"unreadable variable that is no setting": {`containers: [{name: manager, env: [{name: COLOUR, valueFrom: {configMapKeyRef: {name: hidden, key: ray}}}]}]`, nil},
		"Secret key":                             {`containers: [{name: manager, env: [{name: MLFLOW_URL, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]`, []string{"MLFLOW_URL in Secret operators/s"}},
		"envFrom of an unreadable ConfigMap":     {`containers: [{name: manager, envFrom: [{configMapRef: {name: hidden}}, {configMapRef: {name: switches}}]}]`, []string{"all variables in ConfigMap operators/hidden"}},
		"envFrom of a Secret":                    {`containers: [{name: manager, envFrom: [{secretRef: {name: s}}]}]`, []string{"all variables in Secret operators/s"}},
	} {
		got := settingsOf(t, c.pod)
		sentence := ""
		if c.want != nil {
			sentence = "the defaults are assumed for settings of the manager that could not be read: " + strings.Join(c.want, ", ")
		}
		if !got.Known() || got.Unreadable() != sentence {
			t.Errorf("%s: got %q, want %q (%s)", name, got.Unreadable(), sentence, got.SettingsProblem)
		}
	}
}

func TestInvalidSettings(t *testing.T) {
	for name, c := range map[string]struct{ pod, want string }{
		"no container": {`containers: [{name: proxy}]`, `the Deployment has no container "manager"`},
		"unknown flag": {`containers: [{name: manager, args: [--enable-unicorn]}]`, ""},
		"missing file": {`containers: [{name: manager, args: [--config=/none]}]`, ""},
		"file of an unreadable ConfigMap": {"containers: [{name: manager, args: [--config=/c/x], volumeMounts: [{name: f, mountPath: /c}]}]\nvolumes: [{name: f, configMap: {name: hidden}}]",
			"/c/x was not found in the readable ConfigMaps of namespace operators"},
		"file of a Secret": {"containers: [{name: manager, args: [--config=/c/x], volumeMounts: [{name: f, mountPath: /c}]}]\nvolumes: [{name: f, secret: {secretName: s}}]",
			"/c/x was not found in the readable ConfigMaps"},
		"invalid file": {"containers: [{name: manager, args: [--config=/c/other], volumeMounts: [{name: f, mountPath: /c}]}]\nvolumes: [{name: f, configMap: {name: file}}]", ""},
	} {
		got := settingsOf(t, c.pod)
		if got.Known() || got.SettingsProblem == "" || !strings.Contains(got.SettingsProblem, c.want) {
			t.Errorf("%s: got problem %q, want one that contains %q", name, got.SettingsProblem, c.want)
		}
	}
}

func TestVersionOfAnImage(t *testing.T) {
	for image, want := range map[string]string{
		"quay.io/o/p:v1.2":                       "v1.2",
		"localhost:5000/p":                       "",
		"localhost:5000/p:latest":                "latest",
		"p@sha256:0123456789abcdef":              "0123456789ab",
		"quay.io/o/p:v1@sha256:0123456789abcdef": "v1@0123456789ab",
		"p@sha256:01":                            "01",
		"":                                       "",
	} {
		if got := version(image); got != want {
			t.Errorf("%s: got %q, want %q", image, got, want)
		}
	}
}
