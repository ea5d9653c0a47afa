package framework

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// Manifest decodes an object from YAML, which is formatted with fmt.Sprintf if there are arguments.
func Manifest(text string, args ...any) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	if len(args) > 0 {
		text = fmt.Sprintf(text, args...)
	}
	object := &unstructured.Unstructured{}
	gomega.Expect(yaml.Unmarshal([]byte(text), &object.Object)).To(gomega.Succeed(), text)
	return object
}

// Sample reads the first object of a file in config/samples.
func Sample(file string) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	root, err := cluster.RepositoryRoot()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	objects, err := ReadObjects(filepath.Join(root, "config", "samples", file))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return objects[0]
}

// SampleCRD returns a CRD for a namespaced kind with any fields and a status, for kinds whose controllers do not run.
func SampleCRD(group, version, kind string) *apiextensionsv1.CustomResourceDefinition {
	singular := strings.ToLower(kind)
	schema := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: singular + "s." + group, Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, for tests only"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: singular + "s", Singular: singular},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// InstallCRDs creates CRDs, and waits until they are served.
func (e *Env) InstallCRDs(ctx context.Context, crds ...*apiextensionsv1.CustomResourceDefinition) {
	ginkgo.GinkgoHelper()
	gomega.Expect(cluster.InstallCRDs(ctx, e.Config, crds...)).To(gomega.Succeed())
}

// DeleteCRD deletes a CRD, and returns a function that restores it. The end of the spec restores it if the spec did not.
func (e *Env) DeleteCRD(ctx context.Context, name string) (restore func(context.Context)) {
	ginkgo.GinkgoHelper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	e.Get(ctx, crd)
	saved := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: crd.Annotations, Labels: crd.Labels}, Spec: crd.Spec,
	}
	gomega.Expect(e.Admin.Delete(ctx, crd)).To(gomega.Succeed())
	e.WaitDeleted(ctx, crd)
	restore = func(ctx context.Context) {
		ginkgo.GinkgoHelper()
		e.InstallCRDs(ctx, saved.DeepCopy())
	}
	ginkgo.DeferCleanup(func(ctx context.Context) {
		if apierrors.IsNotFound(e.Admin.Get(ctx, client.ObjectKeyFromObject(saved), crd)) {
			restore(ctx)
		}
	}, ginkgo.NodeTimeout(stopTimeout))
	return restore
}

// EtcdSecret returns the Secret with the connection of ModelMesh to an etcd that does not exist.
func EtcdSecret(namespace string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "model-serving-etcd"},
		StringData: map[string]string{"etcd_connection": `{"endpoints": "http://127.0.0.1:1", "root_prefix": "models"}`},
	}
}

// Container returns the named container of a Deployment's pod template, or an empty one.
func Container(deployment *appsv1.Deployment, name string) corev1.Container {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name == name {
			return container
		}
	}
	return corev1.Container{}
}

// Variable returns the value of an environment variable of a container, or "".
func Variable(container corev1.Container, name string) string {
	for _, variable := range container.Env {
		if variable.Name == name {
			return variable.Value
		}
	}
	return ""
}
