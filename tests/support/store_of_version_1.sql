PRAGMA application_id = 0x53505458;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE checkpoints (
    pack TEXT PRIMARY KEY,
    members TEXT NOT NULL,
    step INTEGER NOT NULL,
    version TEXT NOT NULL,
    told REAL NOT NULL,
    data BLOB NOT NULL
);
INSERT INTO "checkpoints" VALUES('19ce433d9edbfb8135b321c571f4309ae77363771faa5f7970c0be94831e648b','["98c18902ea6e853a2f71cbd88a8015b77c34f0cea2b8247916e2364e3d7220e9", "71955b234f68177e87cc50269c52e603e64922395ef10645842d7973f7a13c25", "346368f57c7e5c9f4c4e0976697a1febd89384644eca21f30c89bae4e61e2999"]',10,'1',1.79550010298232936862e+09,X'77656967687473');
CREATE TABLE members (
    sweep TEXT NOT NULL,
    key TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (sweep, key)
) WITHOUT ROWID;
INSERT INTO "members" VALUES('a','346368f57c7e5c9f4c4e0976697a1febd89384644eca21f30c89bae4e61e2999',2);
INSERT INTO "members" VALUES('a','71955b234f68177e87cc50269c52e603e64922395ef10645842d7973f7a13c25',1);
INSERT INTO "members" VALUES('a','98c18902ea6e853a2f71cbd88a8015b77c34f0cea2b8247916e2364e3d7220e9',0);
INSERT INTO "members" VALUES('b','346368f57c7e5c9f4c4e0976697a1febd89384644eca21f30c89bae4e61e2999',0);
INSERT INTO "members" VALUES('b','c548399e4fa1a6993c1dc42c2c4dc5cb473070960dbc3f21e2ae55711a2fa7f7',1);
CREATE TABLE metrics (
    run INTEGER NOT NULL REFERENCES runs (id),
    step INTEGER NOT NULL,
    loss REAL,
    accuracy REAL,
    learning_rate REAL,
    PRIMARY KEY (run, step)
) WITHOUT ROWID;
INSERT INTO "metrics" VALUES(1,10,0.1,0.5,0.001);
INSERT INTO "metrics" VALUES(2,10,0.1,0.5,0.001);
INSERT INTO "metrics" VALUES(3,10,0.1,0.5,0.001);
INSERT INTO "metrics" VALUES(5,20,0.05,0.5,0.001);
CREATE TABLE owners (
    name TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    machine TEXT NOT NULL,
    process INTEGER NOT NULL,
    started TEXT NOT NULL,
    version TEXT NOT NULL,
    file INTEGER NOT NULL,
    since REAL NOT NULL,
    beaten REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    specification TEXT NOT NULL,
    architecture TEXT GENERATED ALWAYS AS (json_extract(specification, '$.architecture')) STORED,
    task TEXT GENERATED ALWAYS AS (json_extract(specification, '$.task')) STORED,
    seed INTEGER GENERATED ALWAYS AS (json_extract(specification, '$.seed')) STORED,
    learning_rate REAL
        GENERATED ALWAYS AS (json_extract(specification, '$.learning_rate')) STORED,
    steps INTEGER GENERATED ALWAYS AS (json_extract(specification, '$.steps')) STORED,
    sweep TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'running', 'done', 'diverged', 'failed')),
    owner TEXT,
    pack TEXT,
    step INTEGER NOT NULL DEFAULT 0,
    seconds REAL NOT NULL DEFAULT 0,
    outcome TEXT,
    correct INTEGER GENERATED ALWAYS AS (json_extract(outcome, '$.correct')) STORED,
    tested INTEGER GENERATED ALWAYS AS (json_extract(outcome, '$.tested')) STORED,
    error TEXT NOT NULL DEFAULT '',
    version TEXT NOT NULL DEFAULT '',
    host TEXT NOT NULL DEFAULT '',
    created REAL NOT NULL,
    ended REAL,
    completions INTEGER NOT NULL DEFAULT 0,
    replaced INTEGER NOT NULL DEFAULT 0
);
INSERT INTO "runs" VALUES(1,'98c18902ea6e853a2f71cbd88a8015b77c34f0cea2b8247916e2364e3d7220e9','{"architecture":"full","batch":128,"curriculum":[],"hidden":64,"learning_rate":0.003,"longer":[],"optimiser":"muon","plateau":0,"precision":"fp32","schedule":"cosine","seconds":0.0,"seed":0,"steps":1000,"stop_at":0.995,"task":"eva:n=4,V=4","tested":2048,"weight_decay":0.01,"width":32}','a','done',NULL,NULL,40,1.5,'{"bits":0.0,"bits_squares":0.0,"correct":2000,"due":0,"formats":[],"longer":[],"longer_due":[],"longer_right":[],"parameters":900,"right":0,"seconds":1.5,"seed":0,"status":"done","steps_done":40,"stopped":"steps","tested":2048}','','1','vm',1.79550010290414428703e+09,1.79550010298232936862e+09,1,1);
INSERT INTO "runs" VALUES(2,'71955b234f68177e87cc50269c52e603e64922395ef10645842d7973f7a13c25','{"architecture":"full","batch":128,"curriculum":[],"hidden":64,"learning_rate":0.003,"longer":[],"optimiser":"muon","plateau":0,"precision":"fp32","schedule":"cosine","seconds":0.0,"seed":1,"steps":1000,"stop_at":0.995,"task":"eva:n=4,V=4","tested":2048,"weight_decay":0.01,"width":32}','a','failed',NULL,NULL,10,2.0,NULL,'no luck','1','vm',1.79550010290414428703e+09,1.79550010299396085736e+09,0,0);
INSERT INTO "runs" VALUES(3,'346368f57c7e5c9f4c4e0976697a1febd89384644eca21f30c89bae4e61e2999','{"architecture":"full","batch":128,"curriculum":[],"hidden":64,"learning_rate":0.003,"longer":[],"optimiser":"muon","plateau":0,"precision":"fp32","schedule":"cosine","seconds":0.0,"seed":2,"steps":1000,"stop_at":0.995,"task":"eva:n=4,V=4","tested":2048,"weight_decay":0.01,"width":32}','a','waiting',NULL,'19ce433d9edbfb8135b321c571f4309ae77363771faa5f7970c0be94831e648b',10,2.0,NULL,'','','',1.79550010290414428703e+09,NULL,0,0);
INSERT INTO "runs" VALUES(4,'c548399e4fa1a6993c1dc42c2c4dc5cb473070960dbc3f21e2ae55711a2fa7f7','{"architecture":"full","batch":128,"curriculum":[],"hidden":64,"learning_rate":0.003,"longer":[],"optimiser":"muon","plateau":0,"precision":"fp32","schedule":"cosine","seconds":0.0,"seed":3,"steps":1000,"stop_at":0.995,"task":"eva:n=4,V=4","tested":2048,"weight_decay":0.01,"width":32}','b','waiting',NULL,NULL,0,0.0,NULL,'','','',1.79550010294603824617e+09,NULL,0,0);
INSERT INTO "runs" VALUES(5,'98c18902ea6e853a2f71cbd88a8015b77c34f0cea2b8247916e2364e3d7220e9','{"architecture":"full","batch":128,"curriculum":[],"hidden":64,"learning_rate":0.003,"longer":[],"optimiser":"muon","plateau":0,"precision":"fp32","schedule":"cosine","seconds":0.0,"seed":0,"steps":1000,"stop_at":0.995,"task":"eva:n=4,V=4","tested":2048,"weight_decay":0.01,"width":32}','a','done',NULL,NULL,40,1.5,'{"bits":0.0,"bits_squares":0.0,"correct":2000,"due":0,"formats":[],"longer":[],"longer_due":[],"longer_right":[],"parameters":900,"right":0,"seconds":1.5,"seed":0,"status":"done","steps_done":40,"stopped":"steps","tested":2048}','','2','vm',1.79550010303945040699e+09,1.79550010309061622618e+09,1,0);
CREATE UNIQUE INDEX run_of_key ON runs (key) WHERE replaced = 0;
CREATE INDEX runs_of_pack ON runs (pack) WHERE pack IS NOT NULL;
CREATE INDEX runs_of_owner ON runs (owner) WHERE owner IS NOT NULL;
CREATE INDEX members_of_key ON members (key);
CREATE TRIGGER ended_stays
BEFORE UPDATE OF key, specification, status, step, seconds, outcome, error, version, host, ended
ON runs WHEN OLD.status IN ('done', 'diverged', 'failed') AND NOT (OLD.status = 'failed' AND NEW.status = 'waiting')
BEGIN SELECT RAISE(ABORT, 'a run that has ended never changes'); END;
CREATE TRIGGER kept_stays BEFORE DELETE ON runs
BEGIN SELECT RAISE(ABORT, 'a run is never dropped from a store'); END;
COMMIT;
