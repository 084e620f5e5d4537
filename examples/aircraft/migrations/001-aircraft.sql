-- The same rules as in Number and AircraftData, because COPY adds rows that these classes have not checked.
CREATE TABLE aircraft (
    number        text PRIMARY KEY,
    title         text NOT NULL,
    serial_number text NOT NULL,
    assembly_date date,
    added_at      timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT aircraft_number CHECK (number ~ '^[A-Z0-9][A-Z0-9-]{0,15}$'),
    CONSTRAINT aircraft_title CHECK (title ~ '[^\s\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]' AND title !~ '[\u0001-\u001f\u007f-\u009f\u2028\u2029\ufffe\uffff]' AND length(title) <= 200),
    CONSTRAINT aircraft_serial_number CHECK (serial_number ~ '[^\s\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]' AND serial_number !~ '[\u0001-\u001f\u007f-\u009f\u2028\u2029\ufffe\uffff]' AND length(serial_number) <= 64),
    CONSTRAINT aircraft_assembly_date CHECK (assembly_date BETWEEN '0001-01-01' AND '9999-12-31')
);
