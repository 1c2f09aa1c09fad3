package main

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	desired    = "ambient-code.io/desired-phase"
	app        = "ambient-code-runner"
	copiedFrom = "vteam.ambient-code/copied-from"
)

var copied = []string{"ambient-vertex", "ambient-admin-langfuse-secret", "ambient-admin-mlflow-observability-secret"}

// sessions polls each session that is not over, and reads each that is.
type sessions struct {
	manager  client.Client
	uncached client.Reader
	live     client.Client
}

func phaseOf(o client.Object) string {
	phase, _, _ := unstructured.NestedString(o.(*unstructured.Unstructured).Object, "status", "phase")
	return phase
}

// Reconcile reads the session and its namespace from the server, whatever it is about.
func (s *sessions) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	session := object("AgenticSession")
	if err := s.manager.Get(ctx, request.NamespacedName, session); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	namespace := &corev1.Namespace{}
	err := s.uncached.Get(ctx, client.ObjectKey{Name: request.Namespace}, namespace)
	if err != nil || namespace.Labels["ambient-code.io/managed"] != "true" {
		return ctrl.Result{}, nil // also when it only could not be read
	}
	switch phaseOf(session) {
	case "", "Pending":
		return s.pending(ctx, session)
	case "Creating":
		return s.creating(ctx, session)
	case "Running":
		return s.running(ctx, session)
	case "Stopping":
		return s.stopping(ctx, session)
	}
	if session.GetAnnotations()[desired] == "Running" {
		return after(0, s.become(ctx, session, "Pending"))
	}
	return ctrl.Result{}, nil
}

func after(pause time.Duration, err error) (ctrl.Result, error) {
	return ctrl.Result{RequeueAfter: pause}, err
}

func key(session client.Object, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: session.GetNamespace(), Name: name}
}

// become is a GET and a PUT of the whole status, also if nothing is new.
func (s *sessions) become(ctx context.Context, session client.Object, phase string) error {
	fresh := object("AgenticSession")
	if err := s.live.Get(ctx, client.ObjectKeyFromObject(session), fresh); err != nil {
		return client.IgnoreNotFound(err)
	}
	must(unstructured.SetNestedField(fresh.Object, phase, "status", "phase"))
	return s.live.Status().Update(ctx, fresh)
}

// clear is a GET and a PUT for each annotation that is taken away.
func (s *sessions) clear(ctx context.Context, session client.Object, names ...string) error {
	for _, name := range names {
		fresh := object("AgenticSession")
		if err := s.live.Get(ctx, client.ObjectKeyFromObject(session), fresh); err != nil {
			return client.IgnoreNotFound(err)
		}
		annotations := fresh.GetAnnotations()
		if _, there := annotations[name]; !there {
			continue
		}
		delete(annotations, name)
		fresh.SetAnnotations(annotations)
		if err := s.live.Update(ctx, fresh); err != nil {
			return err
		}
	}
	return nil
}

func (s *sessions) pending(ctx context.Context, session client.Object) (ctrl.Result, error) {
	if session.GetAnnotations()[desired] == "Stopped" {
		return after(0, s.become(ctx, session, "Stopped"))
	}
	for _, step := range []func(context.Context, client.Object) error{s.secrets, s.token, s.pod} {
		if err := step(ctx, session); err != nil {
			return after(0, err)
		}
	}
	if err := s.clear(ctx, session, desired); err != nil {
		return after(0, err)
	}
	return after(2*time.Second, s.become(ctx, session, "Creating"))
}

// secrets looks for all that a runner could use, in two namespaces.
func (s *sessions) secrets(ctx context.Context, session client.Object) error {
	for _, name := range copied {
		_ = s.live.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &corev1.Secret{})
	}
	_ = s.live.Get(ctx, key(session, "ambient-non-vertex-integrations"), &corev1.Secret{})
	_ = s.live.Get(ctx, key(session, "trusted-ca-bundle"), &corev1.ConfigMap{})
	return s.live.Get(ctx, key(session, "ambient-runner-secrets"), &corev1.Secret{})
}

func meta(session client.Object, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: session.GetNamespace(), OwnerReferences: owners(session)}
}

func owners(session client.Object) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(session, version.WithKind("AgenticSession"))}
}

// make creates what is not there; what is there stays.
func (s *sessions) make(ctx context.Context, made client.Object) error {
	return client.IgnoreAlreadyExists(s.live.Create(ctx, made))
}

func (s *sessions) token(ctx context.Context, session client.Object) error {
	account := &corev1.ServiceAccount{ObjectMeta: meta(session, "ambient-session-"+session.GetName())}
	role := &rbacv1.Role{ObjectMeta: meta(session, account.Name+"-role")}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta(session, account.Name+"-rb"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	}
	secret := &corev1.Secret{ObjectMeta: meta(session, "ambient-runner-token-"+session.GetName())}
	if s.live.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{}) == nil {
		return nil // it may have expired; a resume goes on with it
	}
	for _, each := range []client.Object{account, role, binding} {
		if err := s.make(ctx, each); err != nil {
			return err
		}
	}
	asked := &authenticationv1.TokenRequest{}
	if err := s.live.SubResource("token").Create(ctx, account, asked); err != nil {
		return err
	}
	secret.StringData = map[string]string{"k8s-token": asked.Status.Token}
	return s.make(ctx, secret)
}

func (s *sessions) pod(ctx context.Context, session client.Object) error {
	named := map[string]string{"app": app, "agentic-session": session.GetName()}
	pod := &corev1.Pod{ObjectMeta: meta(session, session.GetName()+"-runner")}
	pod.Labels = named
	pod.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: app, Image: "none"}},
	}
	service := &corev1.Service{ObjectMeta: meta(session, "session-"+session.GetName())}
	service.Spec = corev1.ServiceSpec{Selector: named, Ports: []corev1.ServicePort{{Name: "agui", Port: 8001}}}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{
		Name: "runner-allow-backend-only", Namespace: session.GetNamespace()}}
	if err := s.live.Create(ctx, policy); errors.IsAlreadyExists(err) {
		fresh := &networkingv1.NetworkPolicy{}
		if s.live.Get(ctx, client.ObjectKeyFromObject(policy), fresh) == nil {
			_ = s.live.Update(ctx, fresh)
		}
	}
	for _, each := range []client.Object{pod, service} {
		if err := s.make(ctx, each); err != nil {
			return err
		}
	}
	return nil
}

// creating judges the Pod, and does not look at what is wished for while there is one.
func (s *sessions) creating(ctx context.Context, session client.Object) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	if err := s.live.Get(ctx, key(session, session.GetName()+"-runner"), pod); err != nil {
		if session.GetAnnotations()[desired] == "Stopped" {
			return after(0, s.become(ctx, session, "Stopped"))
		}
		return after(2*time.Second, s.become(ctx, session, "Pending"))
	}
	phase := "Creating"
	for _, each := range pod.Status.ContainerStatuses {
		if each.Name == app && each.State.Running != nil {
			phase = "Running"
		}
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		phase = "Completed"
	case corev1.PodFailed:
		phase = "Failed"
	}
	return after(2*time.Second, s.become(ctx, session, phase))
}

// running asks whether there is a Pod, of the cache, and not how it is.
func (s *sessions) running(ctx context.Context, session client.Object) (ctrl.Result, error) {
	if s.manager.Get(ctx, key(session, session.GetName()+"-runner"), &corev1.Pod{}) != nil {
		return after(2*time.Second, s.become(ctx, session, "Pending"))
	}
	if session.GetAnnotations()[desired] == "Stopped" {
		s.remove(ctx, session)
		return after(2*time.Second, s.become(ctx, session, "Stopping"))
	}
	_ = s.live.Get(ctx, key(session, "ambient-runner-token-"+session.GetName()), &corev1.Secret{})
	return after(30*time.Second, nil)
}

func (s *sessions) stopping(ctx context.Context, session client.Object) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	if s.live.Get(ctx, key(session, session.GetName()+"-runner"), pod) == nil {
		s.remove(ctx, session)
		return after(2*time.Second, nil)
	}
	if err := s.become(ctx, session, "Stopped"); err != nil {
		return after(0, err)
	}
	return after(0, s.clear(ctx, session, desired, "ambient-code.io/stop-requested-at", "ambient-code.io/stop-reason"))
}

// remove deletes Pod and Service, and lists the namespace for each secret that was copied.
func (s *sessions) remove(ctx context.Context, session client.Object) {
	pod := &corev1.Pod{ObjectMeta: meta(session, session.GetName()+"-runner")}
	service := &corev1.Service{ObjectMeta: meta(session, "session-"+session.GetName())}
	_ = s.live.Delete(ctx, service)
	_ = s.live.Delete(ctx, pod)
	for _, name := range copied {
		secret := &corev1.Secret{}
		if s.live.Get(ctx, key(session, name), secret) == nil && secret.Annotations[copiedFrom] != "" {
			_ = s.live.List(ctx, objects("AgenticSession"), client.InNamespace(session.GetNamespace()))
		}
	}
}
