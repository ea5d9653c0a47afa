package dependencies_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	passwordSecret   = "etcd-passwords"
	connectionSecret = "model-serving-etcd"
	creatorContainer = "etcd-secret-creator"
	authContainer    = "enable-auth"

	scriptTimeout = time.Minute
)

// localDeployment runs the containers of a Deployment as processes. They have the commands and variables of the installed objects, but
// folders and ports of this machine.
type localDeployment struct {
	deployment, namespace, user, dir, kubeconfig string
	ports                                        []int
	podSpec                                      corev1.PodSpec
	claims                                       []corev1.PersistentVolumeClaim
}

// etcdDeployment is the Deployment of etcd, with access to its passwords and data.
type etcdDeployment struct{ *localDeployment }

// objectsIn builds a kustomization, leaves out its Namespace, and sets the namespace of the other objects.
func objectsIn(ctx context.Context, dir, namespace string) []*unstructured.Unstructured {
	GinkgoHelper()
	objects, err := operator.Kustomize(dir)
	Expect(err).NotTo(HaveOccurred())
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Namespace" })
	for _, object := range objects {
		Expect(object.GetNamespace()).To(Equal("opendatahub"), "%s %s", object.GetKind(), object.GetName())
		object.SetNamespace(namespace)
		subjects, found, err := unstructured.NestedSlice(object.Object, "subjects")
		Expect(err).NotTo(HaveOccurred())
		if !found {
			continue
		}
		for _, subject := range subjects {
			Expect(subject).To(HaveKeyWithValue("namespace", "opendatahub"))
			subject.(map[string]any)["namespace"] = namespace
		}
		Expect(unstructured.SetNestedSlice(object.Object, subjects, "subjects")).To(Succeed())
	}
	return objects
}

// createRestrictedNamespace creates a namespace that enforces the restricted Pod Security level.
func createRestrictedNamespace(ctx context.Context, prefix string) string {
	GinkgoHelper()
	namespace := env.Namespace(ctx, prefix)
	env.Patch(ctx, framework.NamespaceNamed(namespace), map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"}}})
	return namespace
}

func installEtcd(ctx context.Context) *etcdDeployment {
	GinkgoHelper()
	return &etcdDeployment{install(ctx, "test/integration/dependencies/testdata/etcd", "etcd")}
}

// install creates the objects of a kustomization in a new restricted namespace, except Predictors, and returns its Deployment of the given
// name.
func install(ctx context.Context, dir, deployment string) *localDeployment {
	GinkgoHelper()
	instance := &localDeployment{deployment: deployment, namespace: createRestrictedNamespace(ctx, deployment), dir: GinkgoT().TempDir()}
	instance.kubeconfig = filepath.Join(instance.dir, "kubeconfig")
	Expect(os.MkdirAll(filepath.Join(instance.dir, "run"), 0o700)).To(Succeed())
	Expect(os.MkdirAll(filepath.Join(instance.dir, "scripts"), 0o700)).To(Succeed())
	for _, object := range objectsIn(ctx, dir, instance.namespace) {
		if object.GetKind() == "Predictor" {
			continue // its CRD is not installed
		}
		Expect(env.Admin.Create(ctx, object.DeepCopy())).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		instance.store(object)
	}
	instance.user = "system:serviceaccount:" + instance.namespace + ":" + instance.podSpec.ServiceAccountName
	token := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: instance.namespace, Name: instance.podSpec.ServiceAccountName}}
	Expect(env.Admin.SubResource("token").Create(ctx, account, token)).To(Succeed())
	Expect(env.Instance.WriteTokenKubeconfig(instance.kubeconfig, token.Status.Token, "default")).To(Succeed())
	ports, err := env.Instance.ReservePorts(ctx, 2)
	Expect(err).NotTo(HaveOccurred())
	instance.ports = ports
	return instance
}

// store stores the pod spec, the scripts or the PersistentVolumeClaim of an object for the specs.
func (local *localDeployment) store(object *unstructured.Unstructured) {
	GinkgoHelper()
	convert := func(target any) {
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, target)).To(Succeed())
	}
	switch object.GetKind() {
	case "Deployment":
		var deployment appsv1.Deployment
		convert(&deployment)
		if deployment.Name == local.deployment {
			local.podSpec = deployment.Spec.Template.Spec
		}
	case "ConfigMap":
		var scripts corev1.ConfigMap
		convert(&scripts)
		for name, text := range scripts.Data {
			Expect(os.WriteFile(filepath.Join(local.dir, "scripts", name), []byte(text), 0o600)).To(Succeed())
		}
	case "PersistentVolumeClaim":
		var claim corev1.PersistentVolumeClaim
		convert(&claim)
		local.claims = append(local.claims, claim)
	}
}

func (local *localDeployment) container(name string) corev1.Container {
	GinkgoHelper()
	containers := slices.Concat(local.podSpec.InitContainers, local.podSpec.Containers)
	index := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
	Expect(index).NotTo(BeNumerically("<", 0), "no container %s", name)
	return containers[index]
}

// localize replaces folders and ports of the pod with folders and ports of this machine.
func (local *localDeployment) localize(text string) string {
	return strings.NewReplacer(
		"$(NAMESPACE)", local.namespace, "/scripts/", local.dir+"/scripts/", "/run/"+local.deployment, local.dir+"/run", "/var/lib/etcd", local.dir+"/data",
		"0.0.0.0:2379", fmt.Sprintf("127.0.0.1:%d", local.ports[0]), "127.0.0.1:2379", fmt.Sprintf("127.0.0.1:%d", local.ports[0]),
		"127.0.0.1:2380", fmt.Sprintf("127.0.0.1:%d", local.ports[1])).Replace(text)
}

// command returns a container as a process in its own process group, with the given folders at the start of PATH.
func (local *localDeployment) command(ctx context.Context, container string, pathPrefix ...string) *exec.Cmd {
	GinkgoHelper()
	c := local.container(container)
	path := strings.Join(append(pathPrefix, binDir, "/usr/bin", "/bin"), ":")
	variables := []string{"PATH=" + path, "KUBECONFIG=" + local.kubeconfig}
	for _, variable := range c.Env {
		value := local.localize(variable.Value)
		if variable.ValueFrom != nil {
			Expect(variable.ValueFrom.FieldRef.FieldPath).To(Equal("metadata.namespace"))
			value = local.namespace
		}
		variables = append(variables, variable.Name+"="+value)
	}
	program, args := c.Command[0], []string(nil)
	for _, argument := range c.Command[1:] {
		args = append(args, local.localize(argument))
	}
	if !strings.Contains(program, "/") {
		program = filepath.Join(binDir, program)
	}
	command := exec.CommandContext(ctx, program, args...)
	command.Env, command.Dir = variables, local.dir
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	return command
}

// run runs a container to completion and returns its output.
func (local *localDeployment) run(ctx context.Context, container string, pathPrefix ...string) (string, error) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, scriptTimeout)
	defer cancel()
	output, err := local.command(ctx, container, pathPrefix...).CombinedOutput()
	return string(output), err
}

func (local *localDeployment) runContainer(ctx context.Context, container string) string {
	GinkgoHelper()
	output, err := local.run(ctx, container)
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	return output
}

// killAt creates a wrapper of a program that kills its process group, like SIGKILL from the kubelet, when its arguments contain the text. It
// returns the folder to prepend to PATH.
func (local *localDeployment) killAt(program, argument string) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	text := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *%q*) kill -9 0 ;; esac\nexec %s \"$@\"\n", argument, filepath.Join(binDir, program))
	Expect(os.WriteFile(filepath.Join(dir, program), []byte(text), 0o700)).To(Succeed())
	return dir
}

func (local *localDeployment) secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: local.namespace, Name: name}}
}

// createSecret creates a Secret like a user, and replaces an existing one.
func (local *localDeployment) createSecret(ctx context.Context, name, key, value string) {
	GinkgoHelper()
	secret := local.secret(name)
	Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, local.secret(name)))).To(Succeed())
	secret.Data = map[string][]byte{key: []byte(value)}
	Expect(env.Admin.Create(ctx, secret)).To(Succeed())
}

func (etcd *etcdDeployment) password(ctx context.Context) string {
	GinkgoHelper()
	secret := etcd.secret(passwordSecret)
	env.Get(ctx, secret)
	return string(secret.Data["root"])
}

func (etcd *etcdDeployment) connection(ctx context.Context) meshetcd.Connection {
	GinkgoHelper()
	secret := etcd.secret(connectionSecret)
	env.Get(ctx, secret)
	connection, err := meshetcd.Parse(secret.Data)
	Expect(err).NotTo(HaveOccurred())
	return connection
}

// readPassword returns the password for the container that enables authentication.
func (etcd *etcdDeployment) readPassword() string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(etcd.dir, "run", "root-password"))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

func (etcd *etcdDeployment) writePassword(password string) {
	GinkgoHelper()
	Expect(os.WriteFile(filepath.Join(etcd.dir, "run", "root-password"), []byte(password), 0o600)).To(Succeed())
}

// serve runs the container etcd until the returned function is called or the spec ends.
func (etcd *etcdDeployment) serve(ctx context.Context) (stop func()) {
	GinkgoHelper()
	command := etcd.command(context.WithoutCancel(ctx), "etcd")
	command.Stdout, command.Stderr = GinkgoWriter, GinkgoWriter
	Expect(command.Start()).To(Succeed())
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			Expect(command.Process.Signal(syscall.SIGTERM)).To(Succeed())
			_ = command.Wait() // exits by the signal, which Wait reports as an error
		}
	}
	DeferCleanup(stop)
	return stop
}

// list reads from etcd with the connection of a client, but at the local address.
func (etcd *etcdDeployment) list(ctx context.Context, connection meshetcd.Connection) error {
	GinkgoHelper()
	connection.Endpoints = fmt.Sprintf("http://127.0.0.1:%d", etcd.ports[0])
	text, err := json.Marshal(connection)
	Expect(err).NotTo(HaveOccurred())
	reader, err := meshetcd.New(map[string][]byte{meshetcd.ConnectionKey: text})
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(reader.Close()).To(Succeed()) }()
	_, err = reader.List(ctx, "mm/", true)
	return err
}
