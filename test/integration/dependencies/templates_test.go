package dependencies_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

// template holds the fields of an OpenShift Template that this suite reads.
type template struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Objects           []json.RawMessage `json:"objects"`
	Parameters        []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Value       string `json:"value"`
		Required    bool   `json:"required"`
	} `json:"parameters"`
}

var parameterReference = regexp.MustCompile(`\$\{([A-Z0-9_]+)\}`)

func readTemplate(file string) template {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("../../../config/async-upload", file))
	Expect(err).NotTo(HaveOccurred())
	var t template
	Expect(yaml.UnmarshalStrict(text, &t)).To(Succeed())
	Expect(t.Kind).To(Equal("Template"))
	Expect(t.APIVersion).To(Equal("template.openshift.io/v1"))
	return t
}

// process renders a Template of one object with the given values of its parameters, like OpenShift.
func (t template) process(values map[string]string) *unstructured.Unstructured {
	GinkgoHelper()
	Expect(t.Objects).To(HaveLen(1))
	parameters := map[string]string{}
	for _, parameter := range t.Parameters {
		value, found := values[parameter.Name]
		if !found {
			value = parameter.Value
		}
		Expect(parameter.Required && value == "").To(BeFalse(), "parameter %s has no value", parameter.Name)
		Expect(parameter.Description).NotTo(BeEmpty(), parameter.Name)
		parameters[parameter.Name] = value
	}
	used := map[string]bool{}
	text := parameterReference.ReplaceAllStringFunc(string(t.Objects[0]), func(text string) string {
		name := strings.Trim(text, "${}")
		Expect(parameters).To(HaveKey(name))
		used[name] = true
		return parameters[name]
	})
	Expect(used).To(HaveLen(len(parameters)), "used parameters %v, want all of %v", used, parameters)
	object := &unstructured.Unstructured{}
	Expect(json.Unmarshal([]byte(text), object)).To(Succeed())
	return object
}

var _ = Describe("The Templates of uploads", func() {
	common := map[string]string{
		"MODEL_SYNC_MODEL_ARTIFACT_ID": "3", "MODEL_SYNC_REGISTRY_SERVER_ADDRESS": "https://registry.example.com",
		"DESTINATION_CONNECTION": "push", "MODEL_SYNC_DESTINATION_OCI_URI": "registry.example.com/models/m:1",
	}
	DescribeTable("create Jobs of the restricted level",
		func(ctx SpecContext, file, name, source string, extra map[string]string, optional bool) {
			t := readTemplate(file)
			Expect(t.Name).To(Equal(name))
			values := map[string]string{}
			for _, part := range []map[string]string{common, extra} {
				for key, value := range part {
					values[key] = value
				}
			}
			namespace := createRestrictedNamespace(ctx, "upload")
			job := &batchv1.Job{}
			object := t.process(values)
			object.SetNamespace(namespace)
			Expect(client.WithFieldValidation(env.Admin, "Strict").Create(ctx, object, client.DryRunAll)).To(Succeed())
			text, err := json.Marshal(object)
			Expect(err).NotTo(HaveOccurred())
			Expect(json.Unmarshal(text, job)).To(Succeed())
			Expect(job.Name).To(Equal("my-async-upload-job"))
			Expect(job.Labels).To(HaveKeyWithValue("modelregistry.kubeflow.org/job-type", "async-upload"))
			pod := job.Spec.Template.Spec
			Expect(env.Admin.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job"}, Spec: pod}, client.DryRunAll)).To(Succeed())
			Expect(pod.RestartPolicy).To(Equal(corev1.RestartPolicyNever))
			Expect(pod.Containers).To(ConsistOf(And(HaveField("Name", "async-upload"),
				HaveField("Image", "quay.io/opendatahub/model-registry-job-async-upload:v0.3.14"))))
			Expect(pod.Containers[0].Env).To(ContainElements(
				corev1.EnvVar{Name: "MODEL_SYNC_SOURCE_TYPE", Value: source}, corev1.EnvVar{Name: "MODEL_SYNC_MODEL_UPLOAD_INTENT", Value: "update_artifact"},
				corev1.EnvVar{Name: "MODEL_SYNC_REGISTRY_AUTHOR", Value: "jobs-async-upload"},
				corev1.EnvVar{Name: "MODEL_SYNC_DESTINATION_OCI_ENABLE_TLS_VERIFY", Value: "true"}))
			volumes := map[string]corev1.VolumeSource{}
			for _, volume := range pod.Volumes {
				volumes[volume.Name] = volume.VolumeSource
			}
			Expect(volumes["source"].Secret.Optional != nil && *volumes["source"].Secret.Optional).To(Equal(optional))
			Expect(volumes["destination"].Secret).To(And(HaveField("SecretName", "push"), HaveField("Optional", BeNil())))
			Expect(volumes["metadata"].ConfigMap).To(And(HaveField("Name", "model-metadata"), HaveField("Optional", HaveValue(BeTrue()))))
			for path, volume := range map[string]string{
				"/opt/creds/source": "source", "/opt/creds/destination": "destination", "/etc/model-metadata": "metadata",
			} {
				Expect(pod.Containers[0].VolumeMounts).To(ContainElement(And(HaveField("MountPath", path), HaveField("Name", volume))))
			}
		},
		Entry("from S3", "s3_template.yaml", "jobs-async-upload-s3-to-oci-template", "s3",
			map[string]string{"SOURCE_CONNECTION": "fetch", "MODEL_SYNC_SOURCE_AWS_KEY": "models/m"}, false),
		Entry("from a URI", "uri_template.yaml", "jobs-async-upload-uri-to-oci-template", "uri",
			map[string]string{"MODEL_SYNC_SOURCE_URI": "https://example.com/m.onnx"}, true),
	)

	DescribeTable("create the metadata of the upload",
		func(ctx SpecContext, file, name string, keys int) {
			t := readTemplate(file)
			Expect(t.Name).To(Equal(name))
			object := t.process(map[string]string{"MODEL_NAME": "m", "MODEL_VERSION_NAME": "1.0.0", "MODEL_ARTIFACT_NAME": "a"})
			object.SetNamespace("default")
			Expect(client.WithFieldValidation(env.Admin, "Strict").Create(ctx, object, client.DryRunAll)).To(Succeed())
			data, _, err := unstructured.NestedStringMap(object.Object, "data")
			Expect(err).NotTo(HaveOccurred())
			Expect(data).To(HaveLen(keys))
			Expect(data).To(HaveKeyWithValue("ModelVersion.name", "1.0.0"))
		},
		Entry("of a model", "create_model_template.yaml", "configmap-create-model-template", 9),
		Entry("of a version", "create_version_template.yaml", "configmap-create-version-template", 6),
	)

	It("include one in the kustomization, with a parameter for the image", func(ctx SpecContext) {
		objects, err := operator.Kustomize("config/async-upload")
		Expect(err).NotTo(HaveOccurred())
		Expect(objects).To(HaveLen(1))
		Expect(objects[0].GetName()).To(Equal("jobs-async-upload-s3-to-oci-template"))
		parameters, _, err := unstructured.NestedSlice(objects[0].Object, "parameters")
		Expect(err).NotTo(HaveOccurred())
		Expect(parameters).To(ContainElement(HaveKeyWithValue("name", "JOB_IMAGE")))
	})
})
