//! Objects that are removed.

use std::collections::HashMap;
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use s3s::dto::{
    DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, ObjectIdentifier,
};
use s3s::{S3, S3Request, S3Response, S3Result};

use super::begun::{About, Begun, failed};
use super::facts::Facts;
use super::look::{check_bucket, look};
use super::{Shared, detached};
use crate::event::EventName;

/// What a removal can turn out to be.
const NAMES: &[EventName] = &[
    EventName::ObjectRemovedDelete,
    EventName::ObjectRemovedNoOp,
    EventName::ObjectRemovedDeleteMarkerCreated,
];

/// How many objects of one request are looked at, or told of, at the same time.
const AT_ONCE: usize = 32;

/// What a storage says that it has done.
#[derive(Debug, Default)]
struct Removed {
    delete_marker: bool,
    version_id: Option<String>,
}

impl<S: S3> Shared<S> {
    pub(super) async fn delete_object(
        self: &Arc<Self>,
        req: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let is_wanted = self.wants(&req, &req.input.bucket, NAMES);
        if !is_wanted && !self.concerns_tags(&req.input.bucket, None).await? {
            return self.inner.delete_object(req).await;
        }
        let about = self.about(&req, &req.input.bucket, &req.input.key);
        let version_id = req.input.version_id.clone();
        let shared = Arc::clone(self);
        detached(async move {
            let begun = if is_wanted { shared.begin_removal(about.clone(), version_id).await? } else { None };
            let outcome = shared.inner.delete_object(req).await;
            let (begun, response) = failed(begun, outcome)?;
            let output = &response.output;
            let removed = Removed {
                delete_marker: output.delete_marker.unwrap_or_default(),
                version_id: output.version_id.clone(),
            };
            let kept = shared.drop_tags(&about, &removed).await;
            shared.tell_removed(begun, removed).await;
            kept?;
            Ok(response)
        })
        .await
    }

    pub(super) async fn delete_objects(
        self: &Arc<Self>,
        req: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let is_wanted = self.wants(&req, &req.input.bucket, NAMES);
        if !is_wanted && !self.concerns_tags(&req.input.bucket, None).await? {
            return self.inner.delete_objects(req).await;
        }
        let about = self.about(&req, &req.input.bucket, "");
        let objects = req.input.delete.objects.clone();
        let shared = Arc::clone(self);
        detached(async move {
            check_bucket(&shared.inner, &about.bucket).await?;
            let begun = if is_wanted { shared.begin_removals(&about, &objects).await? } else { Vec::new() };
            // If this fails as a whole, some may have been removed: those in `begun` are left in doubt, and are looked at.
            let response = shared.inner.delete_objects(req).await?;
            shared.tell_all_removed(&about, objects, begun, &response.output).await?;
            Ok(response)
        })
        .await
    }

    /// Writes the intent of a removal. What it would be is found out before: afterwards nobody can say whether there was
    /// anything to be removed.
    async fn begin_removal(&self, about: About, version_id: Option<String>) -> S3Result<Option<Begun>> {
        let found = look(&self.inner, &about.bucket, &about.key, version_id.clone()).await?;
        let name =
            if found.is_some() { EventName::ObjectRemovedDelete } else { EventName::ObjectRemovedNoOp };
        let version = version_id.clone();
        let begun = self.begin_with(name, about.clone(), move |detail| detail.version_id = version).await?;
        if begun.is_some() || version_id.is_some() {
            return Ok(begun);
        }
        // Somebody may want to know if it turns out to be this.
        self.begin(EventName::ObjectRemovedDeleteMarkerCreated, about).await
    }

    async fn begin_removals(
        self: &Arc<Self>,
        about: &About,
        objects: &[ObjectIdentifier],
    ) -> S3Result<Vec<Option<Begun>>> {
        let wanted: Vec<_> = objects
            .iter()
            .map(|object| {
                let about = About { key: object.key.clone(), ..about.clone() };
                (Arc::clone(self), about, object.version_id.clone())
            })
            .collect();
        let beginning = stream::iter(wanted)
            .map(|(shared, about, version_id)| async move { shared.begin_removal(about, version_id).await });
        let outcomes: Vec<_> = beginning.buffered(AT_ONCE).collect().await;
        let mut begun = Vec::with_capacity(outcomes.len());
        let mut refused = None;
        for outcome in outcomes {
            match outcome {
                Ok(one) => begun.push(one),
                Err(error) => refused = Some(error),
            }
        }
        let Some(error) = refused else { return Ok(begun) };
        begun.into_iter().flatten().for_each(Begun::did_not_happen);
        Err(error)
    }

    /// Tells of every object that the answer does not name among the errors: a quiet one names no other.
    async fn tell_all_removed(
        self: &Arc<Self>,
        about: &About,
        objects: Vec<ObjectIdentifier>,
        begun: Vec<Option<Begun>>,
        output: &DeleteObjectsOutput,
    ) -> S3Result<()> {
        let name = |key: &Option<String>, version_id: &Option<String>| {
            (key.clone().unwrap_or_default(), version_id.clone())
        };
        let errors = output.errors.iter().flatten().map(|error| (name(&error.key, &error.version_id), None));
        let deleted = output.deleted.iter().flatten().map(|deleted| {
            let removed = Removed {
                delete_marker: deleted.delete_marker.unwrap_or_default(),
                version_id: deleted.delete_marker_version_id.clone(),
            };
            (name(&deleted.key, &deleted.version_id), Some(removed))
        });
        let mut said: HashMap<(String, Option<String>), Option<Removed>> = deleted.chain(errors).collect();
        let mut begun = begun.into_iter();
        let mut telling = Vec::with_capacity(objects.len());
        for object in objects {
            let begun = begun.next().flatten();
            let said =
                said.remove(&(object.key.clone(), object.version_id)).unwrap_or(Some(Removed::default()));
            let Some(removed) = said else {
                if let Some(begun) = begun {
                    begun.did_not_happen();
                }
                continue;
            };
            let about = About { key: object.key, ..about.clone() };
            let shared = Arc::clone(self);
            telling.push(async move {
                let kept = shared.drop_tags(&about, &removed).await;
                shared.tell_removed(begun, removed).await;
                kept
            });
        }
        let outcomes: Vec<S3Result<()>> = stream::iter(telling).buffered(AT_ONCE).collect().await;
        outcomes.into_iter().collect()
    }

    async fn tell_removed(&self, begun: Option<Begun>, removed: Removed) {
        let Some(begun) = begun else { return };
        let of_version = |version_id: Option<String>| Facts {
            version_id: version_id.unwrap_or_default(),
            ..Facts::default()
        };
        if removed.delete_marker {
            let facts = of_version(removed.version_id);
            self.tell_as(begun, EventName::ObjectRemovedDeleteMarkerCreated, facts).await;
        } else if begun.name == EventName::ObjectRemovedDeleteMarkerCreated {
            // Only a marker was to be told of, and none was made.
            begun.did_not_happen();
        } else {
            let facts = of_version(begun.version_id.clone());
            self.tell(begun, facts).await;
        }
    }

    async fn drop_tags(&self, about: &About, removed: &Removed) -> S3Result<()> {
        if removed.delete_marker {
            return Ok(());
        }
        self.replace_tags(&about.bucket, &about.key, None).await
    }
}
