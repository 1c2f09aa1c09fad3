package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	interval = 30 * time.Second
	trigger  = "ambient-session-trigger"
)

// gauge lists all sessions there are, whole and at once, to count some of them.
func gauge(from client.Reader, phases []string) {
	for {
		time.Sleep(interval)
		found := objects("AgenticSession")
		if from.List(context.Background(), found) != nil {
			continue
		}
		count := 0
		for _, each := range found.Items {
			for _, phase := range phases {
				if phaseOf(&each) == phase {
					count++
				}
			}
		}
	}
}

// follow watches from no version on: all that is there comes again with every watch.
func follow(live client.WithWatch, list client.ObjectList, each func(client.Object), options ...client.ListOption) {
	for {
		events, err := live.Watch(context.Background(), list, options...)
		if err != nil {
			time.Sleep(5 * time.Second)
			continue
		}
		for event := range events.ResultChan() {
			if seen, ok := event.Object.(client.Object); ok && event.Type != watch.Deleted {
				each(seen)
			}
		}
	}
}

// namespaces has a read for every project, and gives settings to those without.
func namespaces(live client.WithWatch) {
	managed := client.MatchingLabels{"ambient-code.io/managed": "true"}
	follow(live, &corev1.NamespaceList{}, func(seen client.Object) {
		made := object("ProjectSettings")
		where := client.ObjectKey{Namespace: seen.GetName(), Name: "projectsettings"}
		if !errors.IsNotFound(live.Get(context.Background(), where, made)) {
			return
		}
		made.SetNamespace(where.Namespace)
		made.SetName(where.Name)
		must(unstructured.SetNestedSlice(made.Object, []any{}, "spec", "groupAccess"))
		_ = live.Create(context.Background(), made)
	}, managed)
}

// settings brings one project after the other to what it says, with a pause before each.
func settings(live client.WithWatch) {
	follow(live, objects("ProjectSettings"), func(seen client.Object) {
		time.Sleep(100 * time.Millisecond)
		ctx := context.Background()
		fresh := object("ProjectSettings")
		if live.Get(ctx, client.ObjectKeyFromObject(seen), fresh) != nil {
			return
		}
		bindings(ctx, live, fresh)
		triggers(ctx, live, fresh)
		limits := &corev1.LimitRange{ObjectMeta: named(fresh, "ambient-default-limits")}
		_ = live.Create(ctx, limits)
		if live.Get(ctx, client.ObjectKeyFromObject(seen), fresh) == nil {
			must(unstructured.SetNestedField(fresh.Object, true, "status", "limitRangeReady"))
			_ = live.Status().Update(ctx, fresh) // it comes back as another event
		}
	})
}

func named(project client.Object, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: project.GetNamespace()}
}

// bindings are made if they are not there, and never changed or taken away.
func bindings(ctx context.Context, live client.Client, project *unstructured.Unstructured) {
	access, _, _ := unstructured.NestedSlice(project.Object, "spec", "groupAccess")
	for _, each := range access {
		group, _, _ := unstructured.NestedString(each.(map[string]any), "groupName")
		role, _, _ := unstructured.NestedString(each.(map[string]any), "role")
		binding := &rbacv1.RoleBinding{
			ObjectMeta: named(project, group+"-"+role),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ambient-project-" + role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: group}},
		}
		_ = live.Create(ctx, binding)
	}
}

// triggers writes the role anew each time.
func triggers(ctx context.Context, live client.Client, project client.Object) {
	_ = live.Create(ctx, &corev1.ServiceAccount{ObjectMeta: named(project, trigger)})
	role := &rbacv1.Role{ObjectMeta: named(project, trigger)}
	if errors.IsAlreadyExists(live.Create(ctx, role)) {
		if live.Get(ctx, client.ObjectKeyFromObject(role), role) == nil {
			_ = live.Update(ctx, role)
		}
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: named(project, trigger),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: trigger},
	}
	_ = live.Create(ctx, binding)
}
